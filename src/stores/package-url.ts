// Where this package stands. It is a file of its own, loaded when it is asked for, because `import.meta` is refused where the
// package was turned into CommonJS, as Jest does with `transform`.

export const here: string = import.meta.url
