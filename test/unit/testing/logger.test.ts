// What was logged must be distinguished from what was not.

import { expect, it } from 'vitest'
import { createRecordingLogger, silentLogger } from '../../../src/testing/index.ts'

it('remembers every line with its level and details, until cleared', () => {
  const logger = createRecordingLogger()
  logger.info('begun')
  logger.warn('slow', { ms: 12 })
  logger.warn('slower')
  expect(logger.lines).toEqual([
    { level: 'info', message: 'begun', details: {} },
    { level: 'warn', message: 'slow', details: { ms: 12 } },
    { level: 'warn', message: 'slower', details: {} },
  ])
  expect(logger.messages('warn')).toEqual(['slow', 'slower'])
  logger.clear()
  expect(logger.lines).toEqual([])
})

it('the silent one says nothing', () => {
  for (const level of ['debug', 'info', 'warn', 'error'] as const) expect(silentLogger[level]('x')).toBeUndefined()
})
