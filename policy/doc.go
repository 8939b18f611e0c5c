// Package policy holds named policies for TLS servers: frozen editions of documents that say which
// versions, cipher suites, groups, keys and settings a server should have. Each value names its
// source, and has an end date if its source gives one. Package
// [github.com/ossl-go/ossl/policy/apply] makes configurations of them for ossl.
package policy
