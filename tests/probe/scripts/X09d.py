# X09d | hashes of texts are the same twice, in Python | runner=python twice=differs heavy=1
print(hash("sallyport"))
print("held")
