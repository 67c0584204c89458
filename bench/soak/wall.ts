// Time that two processes of one machine agree upon, finer than a millisecond.

export function wallMs(): number {
  return performance.timeOrigin + performance.now()
}
