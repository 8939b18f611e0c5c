// Nothing: these packages are here for their dependency's source.
