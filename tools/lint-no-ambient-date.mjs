// A lint rule for the rooms that must not read the clock. `new Date(value)`, `Date.UTC` and `Date.parse` are pure and
// allowed; `Date.now()`, `new Date()`, `Date()` and `Date` passed around as a value read, or may read, the wall clock.
// The built-in `no-restricted-globals` cannot tell these apart.

const pureMembers = new Set(['UTC', 'parse', 'prototype'])
const message = 'This reads the wall clock. Use ports.clock.now(), or take the time as an argument.'

function isPure(node) {
  const parent = node.parent
  if (parent.type === 'NewExpression' && parent.callee === node) {
    return parent.arguments.length > 0 && parent.arguments[0].type !== 'SpreadElement'
  }
  if (parent.type === 'MemberExpression' && parent.object === node) {
    return !parent.computed && pureMembers.has(parent.property.name)
  }
  if (parent.type === 'BinaryExpression' && parent.operator === 'instanceof') return true
  return false
}

/** Whether the identifier is read as a value, rather than naming a property, a key or a type. */
function isRead(node) {
  const parent = node.parent
  if (parent.type.startsWith('TS')) return parent.type === 'TSAsExpression' || parent.type === 'TSNonNullExpression'
  if (parent.type === 'MemberExpression') return parent.object === node || parent.computed
  if (parent.type === 'Property' || parent.type === 'PropertyDefinition' || parent.type === 'MethodDefinition') {
    return parent.value === node || parent.computed
  }
  return true
}

const noAmbientDate = {
  meta: { type: 'problem', docs: { description: 'Forbids reading the wall clock through Date.' } },
  create(context) {
    return {
      Identifier(node) {
        if (node.name === 'Date' && isRead(node) && !isPure(node)) context.report({ node, message })
      },
    }
  },
}

export default { meta: { name: 'holdfast' }, rules: { 'no-ambient-date': noAmbientDate } }
