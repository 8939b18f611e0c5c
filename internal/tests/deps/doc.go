// Package deps holds the repository to its rules for imports: the core stands on the
// standard library, only internal/libssl has C, and nothing is built against OpenSSL's headers.
package deps
