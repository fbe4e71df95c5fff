def greet(name):
    if not name:
        return "Hello!"
    return f"Hello, {name}!"
