import { type Answer, type Json, Rejected } from './mcp-host.ts'

export const FILES = ['file:///work/a.txt', 'file:///work/b.txt', 'file:///secret/key']

/** The answers of a server of files, which writes down what reaches it. */
export class Witness {
  readonly seen: string[] = []
  resources: readonly Json[] = FILES.map((uri) => ({ uri, name: uri.slice(8), mimeType: 'text/plain' }))

  templates: readonly Json[] = [{ uriTemplate: 'file:///work/{name}', name: 'work', description: 'Files.' }]
  prompts: readonly Json[] = [{ name: 'greet', arguments: [{ name: 'who', required: true }] }, { name: 'hidden' }]

  readonly answer: Answer = (method, params, turn) => {
    const { uri, name = uri ?? '' } = params as { readonly uri?: string; readonly name?: string }
    if (!method.endsWith('/list')) this.seen.push(`${method} ${name}`.trim())
    switch (method) {
      case 'tools/list':
        return { tools: [{ name: 'link', inputSchema: { type: 'object' } }] }
      case 'tools/call':
        return { content: [{ type: 'resource_link', uri: 'file:///work/a.txt', name: 'a' }] }
      case 'resources/list':
        return { resources: this.resources }
      case 'resources/templates/list':
        return { resourceTemplates: this.templates }
      case 'resources/read':
        if (!/^file:\/\/\/(?:work|secret)\/\w/.test(name)) throw new Rejected(-32_002, 'No such file', { uri: name })
        return { contents: [{ uri: name, mimeType: 'text/plain', text: `content of ${name}` }] }
      case 'prompts/list':
        return { prompts: this.prompts }
      case 'prompts/get':
        return {
          description: 'A greeting.',
          messages: [{ role: 'user', content: { type: 'text', text: `Hello ${String(turn.args['who'])}` } }],
        }
      case 'completion/complete':
        return { completion: { values: COMPLETIONS, total: 40, hasMore: true } }
      default:
        return turn.era === 'legacy' ? {} : undefined
    }
  }
}

const COMPLETIONS = ['a.txt', 'b.txt', 'file:///secret/key', '../secret/key']
