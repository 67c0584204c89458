// What a measurement logs: nothing that is all right.

import type { Logger } from 'holdfast'

export const logger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (message, details) => console.warn(message, details ?? ''),
  error: (message, details) => console.error(message, details ?? ''),
}
