// One catalog for OpenAI, Anthropic and Gemini: its form for each, what each cannot express, and a call on its way back.
import { createGate, type View } from '@toolgate/core'
import { expose, type ExposeTarget } from '@toolgate/expose'

const gate = createGate({
  tools: {
    'calendar:book': {
      description: 'Books a room.',
      inputSchema: {
        type: 'object',
        properties: {
          room: { type: 'string', pattern: '^[A-Z]\\d+$' },
          from: { type: 'string', format: 'date-time' },
          guests: { type: 'array', items: { $ref: '#/$defs/guest' }, minItems: 1, uniqueItems: true },
          repeat: { oneOf: [{ const: 'never' }, { type: 'integer', minimum: 1, multipleOf: 7 }] },
        },
        required: ['room', 'from'],
        $defs: { guest: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
      },
      execute: ({ room, from }) => `booked ${room} at ${from}`,
    },
    'calendar:list': { description: 'Lists bookings.', annotations: { readOnlyHint: true }, execute: () => 'none' },
    'calendar:wipe': { description: 'Removes every booking.', execute: () => 'gone' },
  },
  policy: { deny: ['calendar:wipe'] },
})
// A model may name anything, so the view accepts any text.
const view: View = await gate.view({ user: 'vera' })

// Hidden tools are not exposed. What a target cannot express is rewritten or moved to the description, with a warning.
for (const target of ['openai-responses', 'anthropic', 'gemini'] satisfies ExposeTarget[]) {
  const { tools, names, warnings, errors, tokens, bytes } = expose(view, target, { strict: target !== 'gemini' })
  console.log(`\n${target}: ${tools.length} entries, ${bytes} bytes, about ${tokens.count} tokens`)
  for (const id of view.ids) console.log(`  ${id} goes as ${names.toName(id)}`)
  for (const { tool, path, feature, from, to, action } of warnings)
    console.log(`  ${tool} at ${path || '/'}: ${feature} ${from} ${action}${to === undefined ? '' : ` to ${to}`}`)
  for (const { tool, message } of errors) console.log(`  ${tool} is not exposed: ${message}`)
}

// A model uses the wire name, and in strict mode null for absent fields.
const { names, toInput } = expose(view, 'openai-responses', { strict: true })
const answered = {
  name: 'calendar__book',
  arguments: '{"room":"A7","from":"2026-03-01T09:00:00Z","guests":null,"repeat":null}',
}
const id = names.toId(answered.name)
const input = id && toInput(id, JSON.parse(answered.arguments))
console.log(`\n${answered.name} comes back as ${id} with ${JSON.stringify(input)}`)
const { status, text } = await view.call({ tool: id, input, calledAs: answered.name })
console.log(`  ${status}: ${text}`)

// The gate enforces the policy, whatever was exposed.
const { text: refusal } = await view.call({
  tool: names.toId('calendar__wipe'),
  calledAs: 'calendar__wipe',
  nameOf: (one) => names.toName(one) ?? one,
})
console.log(`  ${refusal}`)
