// Package docs holds the Markdown files of the repository to the code and to their form.
package docs
