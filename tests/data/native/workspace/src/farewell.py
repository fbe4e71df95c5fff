def part(name):
    return f"Goodbye, {name}!"
