// Nothing: this package is here for its dependency's source.
