//go:build cgo

package main

// whatToDo follows the error that lists the attempts to load a library.
const whatToDo = `Install OpenSSL 1.1.1, 3.x or 4.x (Debian, Ubuntu: apt-get install libssl3; Fedora: dnf install openssl-libs;
Alpine: apk add libssl3), or name a libssl by path or version: OSSL_LIBRARY=/opt/openssl/lib/libssl.so.3, OSSL_LIBRARY=3.`
