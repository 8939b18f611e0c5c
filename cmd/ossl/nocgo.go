//go:build !cgo

package main

// whatToDo follows the error that names what was tried.
const whatToDo = `This program was built without cgo and can load no C library: build it with CGO_ENABLED=1 and a C compiler.`
