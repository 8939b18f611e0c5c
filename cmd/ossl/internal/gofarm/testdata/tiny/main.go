// Tiny dials a server.
package main

import (
	"crypto/tls"
	"os"
)

func main() {
	c, err := tls.Dial("tcp", os.Args[1], nil)
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	c.Close()
}
