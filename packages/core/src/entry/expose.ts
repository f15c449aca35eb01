// `@toolgate/core/expose`: a view's tools in the format of a provider or framework, and imports from those formats.

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
export { createWireNames, MAX_NAME_LENGTH, toWireName, type WireNames } from '../expose/names.ts'
export type { ExposeOptions } from '../expose/options.ts'
export { EXPOSE_TARGETS, type ExposeTarget } from '../expose/options.ts'
