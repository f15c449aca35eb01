import type { ModelRequest } from 'langchain'
import type { LangChainTool } from './tools.ts'

type Model = ModelRequest['model']

/** The tools that are bound to a model, on their way to the provider. */
export type OnBound = (tools: readonly LangChainTool[]) => readonly LangChainTool[]

/**
 * Gives the same model, whose tools pass through `onBound` when they are bound: after every other middleware has had
 * its say, so that what is added late is not sent, and what was taken out late is known.
 */
export function watchModel(model: Model, onBound: OnBound): Model {
  return watched(model, onBound)
}

function watched<T extends object>(model: T, onBound: OnBound): T {
  return new Proxy(model, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      // A model that is configured or bound to options holds the one that tools are bound to.
      if (key === 'bound' && typeof value === 'object' && value !== null) return watched(value, onBound)
      if (typeof value !== 'function' || key === 'constructor') return value
      if (key === 'bindTools')
        return (tools: readonly LangChainTool[], ...more: unknown[]): unknown =>
          Reflect.apply(value, target, [onBound(tools), ...more])
      // With the model itself as `this`: its private fields are not the proxy's.
      return (...asked: unknown[]): unknown => Reflect.apply(value, target, asked)
    },
  })
}
