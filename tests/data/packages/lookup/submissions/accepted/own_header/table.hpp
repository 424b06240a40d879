#error the package lays its own over this one
