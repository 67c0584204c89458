// The type of a value as the journal gives it back. `const` infers literals, which events, effects and inputs need for their
// `type`, but makes every array that is written in place read-only; what is read from the journal is a copy that nobody else
// has, so its arrays may be what the author's types say.

/** The same type without the read-only arrays that `const` infers. */
export type Thawed<Value> = Value extends Whole
  ? Value
  : Value extends readonly unknown[]
    ? { -readonly [At in keyof Value]: Thawed<Value[At]> }
    : Value extends object
      ? { [Field in keyof Value]: Thawed<Value[Field]> }
      : Value

/** Types that are not taken apart. */
type Whole =
  | Date
  | Error
  | RegExp
  | URL
  | ArrayBufferView
  | ArrayBuffer
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | ((...given: never[]) => unknown)
