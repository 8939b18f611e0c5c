// Package docs checks that the repository's Markdown files agree with the code and keep their form.
package docs
