/**
 * A call that waits until every entry up to `seq` is durable. A class, so that V8 never makes it in the old generation: see
 * `ChurningMap`.
 */
export class Barrier {
  readonly seq: number
  readonly pass: (at: number) => void

  constructor(seq: number, pass: (at: number) => void) {
    this.seq = seq
    this.pass = pass
  }
}
