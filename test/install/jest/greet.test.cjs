// The same test in CommonJS, for Jest. GREETED is what it expects: another name must fail.

const { workflow } = require('holdfast')
const { createTest } = require('holdfast/testing')

const greet = workflow('greet', (ctx, name) => ctx.step('say', () => `Hello, ${name}`))

test('a run ends with its result', async () => {
  const t = await createTest({ workflows: [greet] })
  const run = await t.start(greet, 'Ada')
  expect(await run.result()).toBe(`Hello, ${process.env.GREETED}`)
  await t.close()
})
