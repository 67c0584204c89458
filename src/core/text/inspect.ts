// How objects that users hold are shown in logs and answers: by their subject, and never with the engine behind them, which
// has secrets. `console.log(run)` and `JSON.stringify({ run })` are written without a thought.

/** Under this name Node asks an object what to show in its stead. */
export const inspected = Symbol.for('nodejs.util.inspect.custom')
