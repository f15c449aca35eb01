import { AsyncLocalStorage } from 'node:async_hooks'
import type { LanguageModel } from 'ai'
import { readOwnJson } from '@toolgate/values/json'
import { fieldsOf } from '../shared/fields.ts'
import type { LoopRun, StepChange } from './run.ts'

/**
 * Returns the options of a step in which the provider chooses among `names` only. All of the run's tools are still sent:
 * the request's tools stay the same, so its prompt cache keeps hitting.
 */
export function maskTo(
  run: LoopRun,
  names: readonly string[],
  change: StepChange | undefined,
  model: LanguageModel,
): StepChange {
  if (names.length === 0) return { ...change, toolChoice: 'none' }
  return run.options.provider === 'google'
    ? { ...change, model: maskGoogle(run, names, change?.model ?? model) }
    : maskOpenAi(names, change)
}

/** Whether masking works with this provider. If not, a step's tools are filtered. */
export function canMask({ options: { mode, provider }, warn }: LoopRun): boolean {
  if (mode !== 'mask') return false
  if (provider === 'openai' || provider === 'google') return true
  warn('mode "mask" needs to know the provider ("openai" or "google"); the tools are filtered.')
  return false
}

/** Returns the options of OpenAI's `allowed_tools`. They override `toolChoice`, so they repeat it. */
function maskOpenAi(names: readonly string[], change: StepChange | undefined): StepChange {
  const { openai: given, ...providerOptions } = change?.providerOptions ?? {}
  const openai = fieldsOf(given)
  const { toolNames: host, mode: hostMode } = fieldsOf(openai['allowedTools'])
  const choice = change?.toolChoice
  const forced = typeof choice === 'object' ? [choice.toolName] : undefined
  const isWanted = (name: string) => (forced ?? names).includes(name) && (!Array.isArray(host) || host.includes(name))
  const toolNames = names.filter(isWanted)
  if (toolNames.length === 0) return { ...change, toolChoice: 'none' }
  const mode = choice === 'required' || forced ? 'required' : hostMode
  const allowedTools = { toolNames, ...(mode === undefined ? {} : { mode }) }
  return { ...change, providerOptions: { ...providerOptions, openai: { ...openai, allowedTools } } }
}

interface Masked {
  readonly names: readonly string[]
  isApplied: boolean
}

const masked = new AsyncLocalStorage<Masked>()

type ProviderModel = Exclude<LanguageModel, string> & { readonly specificationVersion: 'v4' }

/** Google's package has no option to mask tools, so {@link maskingFetch} changes the request before it is sent. */
function maskGoogle(run: LoopRun, names: readonly string[], model: LanguageModel): LanguageModel {
  if (typeof model === 'string' || model.specificationVersion !== 'v4') {
    run.warn('mode "mask" for Google needs a model that its provider made; nothing is masked.')
    return model
  }
  const inner: ProviderModel = model
  const within = async <T>(ask: () => PromiseLike<T>): Promise<T> => {
    const mask: Masked = { names, isApplied: false }
    const answer = await masked.run(mask, ask)
    if (!mask.isApplied)
      run.warn('mode "mask" for Google needs createGoogle({ fetch: maskingFetch() }); nothing is masked.')
    return answer
  }
  return {
    specificationVersion: 'v4',
    provider: inner.provider,
    modelId: inner.modelId,
    supportedUrls: inner.supportedUrls,
    doGenerate: (options) => within(() => inner.doGenerate(options)),
    doStream: (options) => within(() => inner.doStream(options)),
  }
}

/**
 * Returns a `fetch` for `createGoogle({ fetch: maskingFetch() })`, which applies `mode: 'mask'` to Gemini: it sets
 * `allowedFunctionNames`, with `VALIDATED` if the model may also answer in words. Other requests pass unchanged.
 */
export function maskingFetch(
  fetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request),
): typeof globalThis.fetch {
  return (url, init) => {
    const mask = masked.getStore()
    if (!mask || typeof init?.body !== 'string') return fetch(url, init)
    mask.isApplied = true
    return fetch(url, { ...init, body: JSON.stringify(allow(fieldsOf(readOwnJson(init.body)), mask.names)) })
  }
}

function allow(request: Readonly<Record<string, unknown>>, names: readonly string[]): object {
  const toolConfig = fieldsOf(request['toolConfig'])
  const { mode, allowedFunctionNames: before, ...rest } = fieldsOf(toolConfig['functionCallingConfig'])
  if (mode === 'NONE') return request
  const allowedFunctionNames = Array.isArray(before) ? names.filter((name) => before.includes(name)) : names
  const isForced = mode === 'ANY'
  const functionCallingConfig =
    allowedFunctionNames.length === 0
      ? { ...rest, mode: 'NONE' }
      : { ...rest, mode: isForced ? 'ANY' : 'VALIDATED', allowedFunctionNames }
  return { ...request, toolConfig: { ...toolConfig, functionCallingConfig } }
}
