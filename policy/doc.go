// Package policy holds named policies for TLS servers: frozen editions of documents that recommend
// the versions, cipher suites, groups, keys and settings of a server. Each value names its source,
// and has an end date if its source gives one. Package [github.com/ossl-go/ossl/policy/apply] makes
// configurations of them for ossl.
package policy
