// Package watch tests ossl.Watch: files that are replaced in the ways of deployment tools, contents
// and file systems that fail, and handshakes after a change.
package watch
