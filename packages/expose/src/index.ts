// `@toolgate/expose`: a view's tools in the format of a provider or framework, and imports from those formats.

export { type CustomTarget, defineTarget } from './define-target.ts'
export { expose } from './expose.ts'
export type { ExposedNames, ExposedTools, ExposeError, ExposeWarning, Exposure } from './exposure.ts'
export {
  fromAnthropicTools,
  fromBedrockTools,
  fromGeminiTools,
  fromOpenAiTools,
  type ImportedTools,
} from './imports/import-tools.ts'
export { createWireNames, MAX_NAME_LENGTH, toWireName, type WireNames } from './names.ts'
export type { ExposeOptions } from './options.ts'
export { EXPOSE_TARGETS, type ExposeTarget } from './options.ts'
