// Package observe tests the ways in which a program observes its connections: statistics, events,
// classes of failures, attributes for logs, and labels of profiles.
package observe
