// Package deps checks the repository's rules for imports: the core needs only the standard library,
// only internal/libssl contains C, and nothing is built against OpenSSL's headers.
package deps
