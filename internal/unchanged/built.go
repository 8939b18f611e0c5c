package unchanged

// settings are those that were given at the build: package settings decodes them.
const settings = ""

// marker is a line of JSON that says how a program was built, between a magic number, by which
// "ossl inspect" finds it, and a zero byte. "ossl go" writes this file anew for each GOROOT that it
// makes; without it, there is no magic number.
const marker = `{"format":1,"version":"(devel)","mode":"prefer"}` + "\x00"
