import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema'
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI } from '@google/genai'
import { tool as langChainTool } from '@langchain/core/tools'
import { convertToOpenAITool, isLangChainTool } from '@langchain/core/utils/function_calling'
import { generateText, type ToolSet } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import OpenAI from 'openai'
import { toStrictJsonSchema } from 'openai/lib/transform'
import { createGate, defineTool, type JsonSchema } from '@toolgate/core'
import { expose } from './expose.ts'
import { ANTHROPIC_STRICT, OPENAI_STRICT } from './schema/dialect.ts'
import { writeSchema } from './schema/writer.ts'

const RICH: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  definitions: {
    node: { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/definitions/node' } } } },
  },
  properties: {
    tree: { $ref: '#/definitions/node', description: 'A tree.' },
    choice: { oneOf: [{ type: 'string', minLength: 2 }, { type: 'null' }] },
    pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] },
    map: { type: 'object', additionalProperties: { type: 'string' } },
    kind: { const: 'a', default: 'a' },
    several: { type: ['string', 'integer'], format: 'email', minimum: 1 },
    anything: {},
    count: { type: 'integer', exclusiveMinimum: 0, multipleOf: 2 },
  },
  allOf: [{ properties: { more: { enum: ['x', 'y'] } }, required: ['more'] }],
  required: ['tree', 'kind'],
}
const tools = [
  defineTool({
    namespace: 'files',
    name: 'plant',
    title: 'Plant',
    description: 'Plants.',
    inputSchema: RICH,
    annotations: { readOnlyHint: true },
    outputSchema: { type: 'object', properties: { ok: { const: true } } },
  }),
  defineTool({ name: 'now' }),
]
const gate = createGate({ tools })
const view = await gate.view({ user: 'vera' })
const step = await gate.view({ user: 'vera' }, { activeTools: ['now'] })
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Returns what an SDK sends, from a server that answers nothing useful. */
async function sentBy(call: (baseUrl: string) => Promise<unknown>): Promise<JsonSchema> {
  let body = ''
  const server = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () =>
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}'),
    )
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  try {
    await assert.rejects(call(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  }
  return JSON.parse(body) as JsonSchema
}

describe('expose, as the providers’ own SDKs see it', () => {
  it('OpenAI’s strict transformer has nothing left to change', () => {
    const { schema } = writeSchema(RICH, OPENAI_STRICT)
    assert.deepEqual(toStrictJsonSchema(structuredClone(schema)), schema)
  })

  it('Anthropic’s strict transformer has nothing left to change', () => {
    const { schema } = writeSchema(RICH, ANTHROPIC_STRICT)
    assert.deepEqual(plain(transformJSONSchema(structuredClone(schema))), schema)
  })

  it('OpenAI Chat Completions sends the tools and the mask as they are', async () => {
    const { request, tools: exposed } = expose(view, 'openai-chat', { mode: 'mask', step })
    const sent = await sentBy((baseURL) =>
      new OpenAI({ apiKey: 'k', baseURL, maxRetries: 0 }).chat.completions.create({
        model: 'm',
        messages: [],
        ...request,
      }),
    )
    assert.deepEqual(sent['tools'], exposed)
    assert.deepEqual(sent['tool_choice'], {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'now' } }] },
    })
  })

  it('OpenAI Responses sends the tools and its search as they are', async () => {
    const { request, tools: exposed } = expose(view, 'openai-responses', { mode: 'defer', loaded: ['now'] })
    const sent = await sentBy((baseURL) =>
      new OpenAI({ apiKey: 'k', baseURL, maxRetries: 0 }).responses.create({ model: 'm', input: 'hi', ...request }),
    )
    assert.deepEqual(sent['tools'], exposed)
  })

  it('Anthropic Messages sends the tools and its search as they are', async () => {
    const { request, tools: exposed } = expose(view, 'anthropic', { mode: 'defer' })
    const sent = await sentBy((baseURL) =>
      new Anthropic({ apiKey: 'k', baseURL, maxRetries: 0 }).messages.create({
        model: 'm',
        max_tokens: 1,
        messages: [],
        ...request,
      }),
    )
    assert.deepEqual(sent['tools'], exposed)
  })

  for (const schemas of ['json-schema', 'openapi'] as const) {
    it(`Gemini sends the declarations in the form ${schemas} and the mask as they are`, async () => {
      const { request, tools: exposed } = expose(view, 'gemini', { mode: 'mask', step, schemas })
      const before = plain(exposed)
      const sent = await sentBy((baseUrl) =>
        new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl } }).models.generateContent({
          model: 'm',
          contents: 'hi',
          ...request,
        }),
      )
      assert.deepEqual(sent['tools'], before)
      assert.deepEqual(sent['toolConfig'], {
        functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['now'] },
      })
    })
  }

  it('Bedrock Converse sends the tools as they are', async () => {
    const { request, tools: exposed } = expose(view, 'bedrock', { strict: true })
    let body = ''
    const client = new BedrockRuntimeClient({
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 's' },
      requestHandler: {
        handle({ body: sent }: { body: Uint8Array }) {
          body = Buffer.from(sent).toString()
          return Promise.reject(new Error('not sent'))
        },
      },
    })
    await assert.rejects(client.send(new ConverseCommand({ modelId: 'm', messages: [], ...request })))
    client.destroy()
    assert.deepEqual((JSON.parse(body) as { toolConfig: JsonSchema }).toolConfig['tools'], exposed)
  })

  it('the AI SDK gives a model the tools, their schemas as they are', async () => {
    const { request, names } = expose(view, 'ai-sdk')
    const model = new MockLanguageModelV4({
      doGenerate: {
        content: [{ type: 'text', text: 'ok' }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 1, text: 1, reasoning: 0 },
        },
        warnings: [],
      },
    })
    await generateText({ model, prompt: 'hi', ...(request as { tools: ToolSet }) })
    const given = model.doGenerateCalls[0]?.tools ?? []
    assert.deepEqual(
      given.map((tool) => names.toId(tool.name)),
      ['files:plant', 'now'],
    )
    const [plant] = given
    assert.ok(plant?.type === 'function')
    assert.deepEqual(plain(plant.inputSchema), expose(view, 'ai-sdk').tools['files__plant']?.inputSchema.jsonSchema)
  })

  it('LangChain takes the tools, and makes the same of them for OpenAI', () => {
    const chat = expose(view, 'openai-chat').tools
    for (const [i, fields] of expose(view, 'langchain').tools.entries()) {
      assert.ok(isLangChainTool(fields))
      const made = langChainTool(
        () => 'ok',
        fields as unknown as { name: string; description: string; schema: JsonSchema },
      )
      const { description, parameters, name } = convertToOpenAITool(made as never).function
      assert.deepEqual({ name, parameters }, { name: chat[i]?.function.name, parameters: chat[i]?.function.parameters })
      assert.equal(description, chat[i]?.function.description ?? '')
    }
  })
})
