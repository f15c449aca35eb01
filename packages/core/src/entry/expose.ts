// `@toolgate/core/expose`: a view in the form of a provider or a framework, and tools written in those forms.

export { type CustomTarget, defineTarget } from '../expose/define-target.ts'
export { expose } from '../expose/expose.ts'
export type { ExposedNames, ExposedTools, ExposeError, ExposeWarning, Exposure } from '../expose/exposure.ts'
export {
  fromAnthropicTools,
  fromBedrockTools,
  fromGeminiTools,
  fromOpenAiTools,
  type ImportedTools,
} from '../expose/imports/import-tools.ts'
export { createWireNames, toWireName, type WireNames } from '../expose/names.ts'
export type { ExposeOptions } from '../expose/options.ts'
export { EXPOSE_TARGETS, type ExposeTarget } from '../expose/options.ts'
