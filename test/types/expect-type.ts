// Two types are equal when neither can be distinguished from the other, `any`, optional and readonly included.

// oxlint-disable typescript/no-unnecessary-type-parameters -- comparing two generic functions is how types are compared

export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** `expectType<Equal<A, B>>(true)` compiles only if they are. */
export function expectType<IsEqual extends boolean>(isEqual: IsEqual): void {
  void isEqual
}
