// Package recipetest runs the recipes of docs/RECIPES.md: programs that use a driver or a framework
// with TLS by ossl. It starts the recipe's server, lets the client connect twice with each TLS
// version, and reads from the ServerHellos which connections the server has resumed. It compares
// the outcomes with the table in the document.
package recipetest
