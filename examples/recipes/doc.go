// Package recipes has the functions of docs/RECIPES.md: they give drivers and frameworks TLS by
// ossl. Its tests run them against servers, and compare the document with the code and the outcomes.
//
// ci/recipes runs the tests.
package recipes
