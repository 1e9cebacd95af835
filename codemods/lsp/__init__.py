"""The language server, `shapecheck lsp`: what it needs besides comes with the extra `lsp`."""
