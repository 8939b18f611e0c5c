//go:build !cgo

package main

// whatToDo follows the error that says that there is no library.
const whatToDo = `This program was built without cgo, so it can't load a C library. Build it with CGO_ENABLED=1 and a C compiler.`
