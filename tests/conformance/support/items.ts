import { setTimeout as sleep } from 'node:timers/promises'
import { type Json, Rejected, type Turn } from '../../support/mcp-host.ts'

/** What the referee's scenarios call by name: the same items for a server on either SDK. */

export interface ToolItem {
  readonly name: string
  readonly description: string
  readonly inputSchema: Json
  readonly only?: 'modern' | 'legacy'
  readonly run: (turn: Turn) => Json | Promise<Json>
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=='
const STEP_MS = 50

const text = (value: string): Json => ({ type: 'text', text: value })
const content = (...blocks: Json[]): Json => ({ content: blocks })
const says = (value: string): Json => content(text(value))
const string = (description: string): Json => ({ type: 'string', description })
const object = (properties: Json = {}, required: string[] = Object.keys(properties)): Json => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
})
const NOTHING = object()
const image = { type: 'image', data: PNG, mimeType: 'image/png' }

function tool(name: string, description: string, run: ToolItem['run'], more: Partial<ToolItem> = {}): ToolItem {
  return { name, description, inputSchema: NOTHING, run, ...more }
}

const elicit = (message: string, requestedSchema: Json): Json => ({
  method: 'elicitation/create',
  params: { message, requestedSchema },
})
const askName = elicit('What is your name?', object({ name: { type: 'string' } }))
const sample = (prompt: string, maxTokens: number): Json => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens },
})
const listRoots: Json = { method: 'roots/list', params: {} }
const needs = (inputRequests: Json, requestState?: string): Json => ({
  resultType: 'input_required',
  inputRequests,
  ...(requestState !== undefined && { requestState }),
})

/** The content of an accepted form among a retry's answers. */
function formOf({ responses }: Turn, key: string): Json | undefined {
  const answer = responses?.[key] as { action?: string; content?: Json } | undefined
  return answer?.action === 'accept' ? answer.content : undefined
}

const CONTENT: readonly ToolItem[] = [
  tool('test_simple_text', 'Returns one text.', () => says('This is a simple text response for testing.')),
  tool('test_image_content', 'Returns an image.', () => content(image)),
  tool('test_audio_content', 'Returns a sound.', () => content({ type: 'audio', data: WAV, mimeType: 'audio/wav' })),
  tool('test_embedded_resource', 'Returns a resource.', () =>
    content({
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    }),
  ),
  tool('test_multiple_content_types', 'Returns three kinds of content.', () =>
    content(text('Multiple content types test:'), image, {
      type: 'resource',
      resource: {
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: JSON.stringify({ test: 'data', value: 123 }),
      },
    }),
  ),
  tool('test_error_handling', 'Always fails.', () => ({
    ...says('This tool intentionally returns an error for testing'),
    isError: true,
  })),
  tool('test_argument_header', 'Takes an argument that a header repeats.', ({ args }) => says(JSON.stringify(args)), {
    inputSchema: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
  }),
  tool(
    'json_schema_2020_12_tool',
    'Has many keywords of JSON Schema 2020-12.',
    ({ args }) => says(JSON.stringify(args)),
    {
      inputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: {
          address: {
            $anchor: 'addressDef',
            type: 'object',
            properties: { street: { type: 'string' }, city: { type: 'string' } },
          },
        },
        properties: {
          name: { type: 'string' },
          address: { $ref: '#/$defs/address' },
          contactMethod: { type: 'string', enum: ['phone', 'email'] },
          phone: { type: 'string' },
          email: { type: 'string' },
        },
        allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
        if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
        // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
        then: { required: ['phone'] },
        else: { required: ['email'] },
        additionalProperties: false,
      },
    },
  ),
]

/** How often each list has changed. Its first item has the number in its description. */
const changes = { tools: 0, prompts: 0 }

function withChanges(items: readonly Json[], list: keyof typeof changes): readonly Json[] {
  const [first, ...rest] = items
  const count = changes[list]
  return count === 0 ? items : [{ ...first, description: `It has changed ${count} times.` }, ...rest]
}

const NOTICES: readonly ToolItem[] = [
  tool('test_tool_with_logging', 'Logs three times.', async ({ log }) => {
    await log('info', 'Tool execution started')
    await sleep(STEP_MS)
    await log('info', 'Tool processing data')
    await sleep(STEP_MS)
    await log('info', 'Tool execution completed')
    return says('It logged three messages.')
  }),
  tool('test_logging_tool', 'Logs once.', async ({ log }) => {
    await log('info', 'It ran.')
    return says('It logged one message.')
  }),
  tool('test_tool_with_progress', 'Reports its progress.', async ({ progressToken, notify }) => {
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(STEP_MS)
      if (progressToken !== undefined) await notify('notifications/progress', { progressToken, progress, total: 100 })
    }
    return says('The progress is reported.')
  }),
  tool('test_trigger_tool_change', 'Changes the tools.', ({ change }) => {
    changes.tools++
    change('tools')
    return says('The tools have changed.')
  }),
  tool('test_trigger_prompt_change', 'Changes the prompts.', ({ change }) => {
    changes.prompts++
    change('prompts')
    return says('The prompts have changed.')
  }),
]

const COLOURS = ['option1', 'option2', 'option3']
const titled = (...titles: string[]): Json[] => titles.map((title, i) => ({ const: `value${i + 1}`, title }))

/** Earlier revisions: a server asks while a call runs. */
const PUSHED: readonly ToolItem[] = [
  tool(
    'test_sampling',
    'Asks for a text of the model.',
    async ({ args, ask }) => {
      const { params } = sample(String(args['prompt']), 100)
      const answer = await ask('sampling/createMessage', params as Json)
      return says(`LLM response: ${(answer['content'] as { text?: string } | undefined)?.text ?? ''}`)
    },
    { inputSchema: object({ prompt: string('The prompt.') }), only: 'legacy' },
  ),
  tool(
    'test_elicitation',
    'Asks the user.',
    async ({ args, ask }) => {
      const schema = object({ username: string("User's response"), email: string("User's email address") })
      const { action, content: given } = await ask('elicitation/create', {
        message: args['message'],
        requestedSchema: schema,
      })
      return says(`User response: ${JSON.stringify({ action, content: given })}`)
    },
    { inputSchema: object({ message: string('The message.') }), only: 'legacy' },
  ),
  tool(
    'test_elicitation_sep1034_defaults',
    'Asks with defaults.',
    async ({ ask }) =>
      completed(
        await ask('elicitation/create', {
          message: 'Please check these values.',
          requestedSchema: object(
            {
              name: { type: 'string', default: 'John Doe' },
              age: { type: 'integer', default: 30 },
              score: { type: 'number', default: 95.5 },
              status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
              verified: { type: 'boolean', default: true },
            },
            [],
          ),
        }),
      ),
    { only: 'legacy' },
  ),
  tool(
    'test_elicitation_sep1330_enums',
    'Asks for choices.',
    async ({ ask }) =>
      completed(
        await ask('elicitation/create', {
          message: 'Please choose.',
          requestedSchema: object(
            {
              untitledSingle: { type: 'string', enum: COLOURS },
              titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
              legacyEnum: {
                type: 'string',
                enum: ['opt1', 'opt2', 'opt3'],
                enumNames: ['Option One', 'Option Two', 'Option Three'],
              },
              untitledMulti: { type: 'array', items: { type: 'string', enum: COLOURS } },
              titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
            },
            [],
          ),
        }),
      ),
    { only: 'legacy' },
  ),
]

function completed({ action, content: given }: Json): Json {
  return says(`Elicitation completed: action=${String(action)}, content=${JSON.stringify(given ?? {})}`)
}

/** 2026-07-28: a call ends with requests, and the client calls again with the answers. */
const ROUNDS: readonly ToolItem[] = [
  tool('test_input_required_result_elicitation', 'Asks for a name.', (turn) => {
    const name = formOf(turn, 'user_name')?.['name']
    return typeof name === 'string' ? says(`Hello, ${name}!`) : needs({ user_name: askName })
  }),
  tool('test_streaming_elicitation', 'Asks for a name.', (turn) => {
    const name = formOf(turn, 'user_name')?.['name']
    return typeof name === 'string' ? says(`Hello, ${name}!`) : needs({ user_name: askName })
  }),
  tool('test_input_required_result_sampling', 'Asks for a text of the model.', ({ responses }) => {
    const answer = responses?.['capital_question'] as { content?: { text?: string } } | undefined
    return answer?.content?.text === undefined
      ? needs({ capital_question: sample('What is the capital of France?', 100) })
      : says(answer.content.text)
  }),
  tool('test_input_required_result_list_roots', 'Asks for the roots.', ({ responses }) => {
    const roots = (responses?.['client_roots'] as { roots?: unknown[] } | undefined)?.roots
    return Array.isArray(roots) ? says(JSON.stringify(roots)) : needs({ client_roots: listRoots })
  }),
  tool('test_input_required_result_request_state', 'Asks with a state.', (turn) => {
    const given = formOf(turn, 'confirm')
    if (!given) {
      const confirm = elicit('Please confirm', object({ ok: { type: 'boolean' } }))
      return needs({ confirm }, 'waits-for-confirm')
    }
    return says(turn.state === 'waits-for-confirm' ? 'state-ok' : 'The state is another.')
  }),
  tool('test_input_required_result_multiple_inputs', 'Asks three things at once.', ({ responses, state }) => {
    const keys = ['user_name', 'greeting', 'client_roots']
    if (state === 'waits-for-three' && keys.every((key) => responses?.[key] !== undefined)) return says('All answered.')
    const requests = { user_name: askName, greeting: sample('Generate a greeting', 50), client_roots: listRoots }
    return needs(requests, 'waits-for-three')
  }),
  tool('test_input_required_result_multi_round', 'Asks twice.', (turn) => {
    const { state } = turn
    const colour = elicit('Step 2: What is your favorite color?', object({ color: { type: 'string' } }))
    const name = elicit('Step 1: What is your name?', object({ name: { type: 'string' } }))
    const second = formOf(turn, 'step2')
    if (state?.startsWith('second:') && second) return says(`${state.slice(7)} likes ${String(second['color'])}.`)
    const first = formOf(turn, 'step1')
    if (state === 'first' && first) return needs({ step2: colour }, `second:${String(first['name'])}`)
    return needs({ step1: name }, 'first')
  }),
  tool('test_input_required_result_tampered_state', 'Asks with a state that it checks.', (turn) => {
    const ok = elicit('Please confirm', object({ ok: { type: 'boolean' } }))
    if (turn.state === undefined) return needs({ confirm: ok }, 'sealed:1f3870be')
    if (turn.state !== 'sealed:1f3870be') throw new Rejected(-32_602, 'The requestState is not valid.')
    return says('The state is whole.')
  }),
  tool('test_input_required_result_capabilities', 'Asks only for what the client can do.', ({ capabilities }) => {
    const requests = {
      ...(capabilities['elicitation'] !== undefined && { name: askName }),
      ...(capabilities['sampling'] !== undefined && { greeting: sample('Generate a greeting', 50) }),
    }
    return Object.keys(requests).length > 0 ? needs(requests) : says('The client can do nothing of it.')
  }),
  tool('test_missing_capability', 'Needs sampling.', ({ capabilities }) => {
    if (capabilities['sampling'] === undefined)
      throw new Rejected(-32_021, 'This tool needs sampling.', { requiredCapabilities: { sampling: {} } })
    return says('The client has sampling.')
  }),
].map((one) => ({ ...one, only: 'modern' as const }))

export const TOOLS: readonly ToolItem[] = [...CONTENT, ...NOTICES, ...PUSHED, ...ROUNDS]

export function toolsOf(era: Turn['era']): readonly ToolItem[] {
  return TOOLS.filter(({ only }) => only === undefined || only === era)
}

/** The tools as `tools/list` has them. */
export function listedTools(era: Turn['era']): readonly Json[] {
  const listed = toolsOf(era).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  return withChanges(listed, 'tools')
}

export const RESOURCES: readonly Json[] = [
  { uri: 'test://static-text', name: 'static-text', description: 'A text.', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', description: 'An image.', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched', description: 'A text that changes.', mimeType: 'text/plain' },
]

export const TEMPLATES: readonly Json[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template-data',
    description: 'Data of an id.',
    mimeType: 'application/json',
  },
]

/** @throws {Rejected} as each revision asks for where the URI is unknown */
export function read(uri: string, era: Turn['era']): Json {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` }
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }] }
  }
  switch (uri) {
    case 'test://static-text':
      return { contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }] }
    case 'test://static-binary':
      return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] }
    case 'test://watched-resource':
      return { contents: [{ uri, mimeType: 'text/plain', text: 'Watched.' }] }
    default:
      throw new Rejected(era === 'modern' ? -32_602 : -32_002, 'Resource not found', { uri })
  }
}

interface PromptItem {
  readonly name: string
  readonly description: string
  readonly arguments?: readonly Json[]
  readonly only?: 'modern'
  readonly run: (turn: Turn) => Json
}

const user = (block: Json): Json => ({ role: 'user', content: block })
const argument = (name: string, description: string): Json => ({ name, description, required: true })

const PROMPTS: readonly PromptItem[] = [
  {
    name: 'test_simple_prompt',
    description: 'One message.',
    run: () => ({ messages: [user(text('This is a simple prompt for testing.'))] }),
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'Repeats its arguments.',
    arguments: [argument('arg1', 'First test argument'), argument('arg2', 'Second test argument')],
    run: ({ args }) => ({
      messages: [user(text(`Prompt with arguments: arg1='${String(args['arg1'])}', arg2='${String(args['arg2'])}'`))],
    }),
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'Embeds a resource.',
    arguments: [argument('resourceUri', 'URI of the resource to embed')],
    run: ({ args }) => ({
      messages: [
        user({
          type: 'resource',
          resource: {
            uri: args['resourceUri'],
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        }),
        user(text('Please process the embedded resource above.')),
      ],
    }),
  },
  {
    name: 'test_prompt_with_image',
    description: 'Shows an image.',
    run: () => ({ messages: [user(image), user(text('Please analyze the image above.'))] }),
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'Asks for its context.',
    only: 'modern',
    run: (turn) => {
      const context = formOf(turn, 'user_context')?.['context']
      if (context !== undefined) return { messages: [user(text(`The context: ${JSON.stringify(context)}`))] }
      return needs({
        user_context: elicit('What context should the prompt use?', object({ context: { type: 'string' } })),
      })
    },
  },
]

export function promptsOf(era: Turn['era']): readonly Json[] {
  const listed = PROMPTS.filter(({ only }) => only === undefined || only === era).map(
    ({ run: _, only: _only, ...one }) => one as unknown as Json,
  )
  return withChanges(listed, 'prompts')
}

/** @throws {Rejected} for an unknown prompt */
export function getPrompt(name: string, turn: Turn): Json {
  const prompt = PROMPTS.find((one) => one.name === name && (one.only === undefined || one.only === turn.era))
  if (!prompt) throw new Rejected(-32_602, `Unknown prompt: ${name}`)
  return prompt.run(turn)
}

const CITIES = ['paris', 'park', 'party', 'London']

export function complete(params: Json): Json {
  const { value = '' } = (params['argument'] ?? {}) as { value?: string }
  const values = CITIES.filter((city) => city.startsWith(value))
  return { completion: { values, total: values.length, hasMore: false } }
}

/** @throws {Rejected} for an unknown tool */
export function callTool(name: string, turn: Turn): Json | Promise<Json> {
  const item = toolsOf(turn.era).find((one) => one.name === name)
  if (!item) throw new Rejected(-32_602, `Unknown tool: ${name}`)
  return item.run(turn)
}
