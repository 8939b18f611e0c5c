// Package observe tests what a program learns about its connections as a whole: statistics, events,
// classes of failures, attributes for logs, and labels of profiles.
package observe
