import { ANY_OUTPUT, FRAMEWORK } from '../schema/dialect.ts'
import { EVERYTHING, present, type Target } from './target.ts'

/** What `tool(run, fields)` and `model.bindTools([…])` take. */
export interface LangChainTool {
  name: string
  description: string
  schema: { type: 'object'; [keyword: string]: unknown }
  metadata?: Record<string, unknown>
  /** Read by `providerToolSearchMiddleware`. */
  extras?: { defer_loading: true }
}

/** LangChain, whatever the model behind it: schemas are what every provider takes. */
export const langchain: Target = {
  dialect: FRAMEWORK,
  outputDialect: ANY_OUTPUT,
  keeps: EVERYTHING,
  canMask: false,
  canDefer: true,
  define: ({ name, description = '', input, output, title, annotations, icons, _meta, deferred }): LangChainTool => {
    const metadata = present({ title, annotations, outputSchema: output, icons, _meta })
    return present({
      name,
      description,
      schema: input as LangChainTool['schema'],
      metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
      extras: deferred ? ({ defer_loading: true } as const) : undefined,
    })
  },
  collect(named) {
    const tools = named.map(({ definition }) => definition as LangChainTool)
    return { tools, request: { tools } }
  },
}
