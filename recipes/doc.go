// Package recipes has the functions of docs/RECIPES.md: they give drivers and frameworks TLS by
// ossl. Its tests run them against servers, and compare the document with the code and the outcomes.
//
// It is a module of its own, outside of go.work, because its dependencies take long to compile.
// ci/recipes runs it.
package recipes
