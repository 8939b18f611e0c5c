package main

func printRunnerConfig([]string) error { return nil }
