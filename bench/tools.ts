import { defineTool, type Tool } from '@toolgate/core'

const VERBS = ['read', 'list', 'search', 'get', 'write', 'update', 'delete', 'send', 'create', 'run'] as const
const READING: ReadonlySet<string> = new Set(['read', 'list', 'search', 'get'])

/** Gives tools as a large installation has them: twenty servers, ten verbs, tags by verb. */
export function makeTools(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, i) => {
    const verb = VERBS[i % VERBS.length] as string
    return defineTool({
      namespace: `server${i % 20}`,
      name: `${verb}_thing_${i}`,
      description: `Does ${verb} to thing ${i}.`,
      tags: [READING.has(verb) ? 'read' : 'write', ...(i % 50 === 9 ? ['danger'] : [])],
      annotations: READING.has(verb) ? { readOnlyHint: true } : {},
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      execute: ({ path }) => path as unknown,
    })
  })
}
