//go:build ossl_nocgo

package main

import _ "github.com/ossl-go/ossl/nocgo"
