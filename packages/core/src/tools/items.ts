import { checkShape, ConfigError, isErrorOf, shapeOf } from '@toolgate/values'
import { deepFreeze, frozenCopy, isObject } from '@toolgate/values/json'
import { checkNamespace, findNameProblem, type ItemKind, PROMPT_PREFIX, RESOURCE_PREFIX } from './tool-id.ts'
import {
  type CallContext,
  type ItemAnnotations,
  type ItemFields,
  type ItemParts,
  type JsonSchema,
  makeItem,
  type PromptArgument,
  type Tool,
  type ToolDefinition,
} from './tool.ts'
import { findUriProblem } from './uri.ts'
import { findTemplateProblem } from './uri-template.ts'

/** The fields that resources, templates and prompts have in common with tools. */
const COMMON = {
  title: true,
  description: true,
  icons: true,
  _meta: true,
  fields: true,
  tags: true,
  category: true,
  requiredScopes: true,
  labels: true,
  trusted: true,
  hintsTrusted: true,
  deadlineMs: true,
} as const
const COMMON_NAMES = Object.keys(COMMON) as readonly (keyof typeof COMMON)[]

/** The fields that resources, templates and prompts have in common. */
interface ItemDefinition extends Pick<ToolDefinition, keyof typeof COMMON> {
  /** The name of the server. */
  readonly namespace: string
  readonly annotations?: ItemAnnotations | undefined
}

/** The definition of a resource, as a source writes it. */
export interface ResourceDefinition extends ItemDefinition {
  readonly uri: string
  /** MCP's `name`, shown to people. Default: the URI. */
  readonly name?: string | undefined
  readonly mimeType?: string | undefined
  /** In bytes. */
  readonly size?: number | undefined
  /** Reads the resource. The input always has the resource's own URI. */
  readonly execute?: ((input: { readonly uri: string }, call: CallContext) => unknown) | undefined
}

export interface TemplateDefinition extends ItemDefinition {
  /** Must have at least one expression. */
  readonly uriTemplate: string
  readonly name?: string | undefined
  readonly mimeType?: string | undefined
}

export interface PromptDefinition extends ItemDefinition {
  readonly name: string
  readonly arguments?: readonly PromptArgument[] | undefined
  readonly execute?: ((input: Readonly<Record<string, string>>, call: CallContext) => unknown) | undefined
}

/**
 * Returns a checked, frozen resource. Its id is `resource:<server>:<uri>`.
 *
 * @throws {ConfigError} `tool_invalid`
 */
export function defineResource(definition: ResourceDefinition): Tool {
  const { uri, name = uri, namespace, mimeType, size, execute } = definition
  const path = checkStart('resource', namespace, 'uri', uri, findUriProblem)
  checkFields(path, definition, RESOURCE)
  checkText(path, 'name', name)
  checkText(path, 'mimeType', mimeType)
  if (size !== undefined && !(Number.isSafeInteger(size) && size >= 0))
    throw invalid(path, 'size must be a number of bytes')
  const own: ItemParts = {
    kind: 'resource',
    id: `${RESOURCE_PREFIX}${namespace}:${uri}`,
    namespace,
    name,
    uri,
    mimeType,
    size,
    arguments: undefined,
  }
  return makeItem(own, {
    ...commonOf(definition, name),
    inputSchema: ofUri(uri),
    // A host's validation may let another URI pass, so the decided URI is used.
    execute: typeof execute === 'function' ? (_, call) => execute({ uri }, call) : execute,
  })
}

/**
 * Returns a checked, frozen resource template. Its id is `resource:<server>:<uriTemplate>`. Templates are listed and
 * decided; the URIs that they expand to are resources.
 *
 * @throws {ConfigError} `tool_invalid`
 */
export function defineTemplate(definition: TemplateDefinition): Tool {
  const { uriTemplate, name = uriTemplate, namespace, mimeType } = definition
  const path = checkStart('template', namespace, 'uriTemplate', uriTemplate, findTemplateProblem)
  checkFields(path, definition, TEMPLATE)
  checkText(path, 'name', name)
  checkText(path, 'mimeType', mimeType)
  const own: ItemParts = {
    kind: 'template',
    id: `${RESOURCE_PREFIX}${namespace}:${uriTemplate}`,
    namespace,
    name,
    uri: uriTemplate,
    mimeType,
    size: undefined,
    arguments: undefined,
  }
  return makeItem(own, commonOf(definition, name))
}

/**
 * Returns a checked, frozen prompt. Its id is `prompt:<server>:<name>`.
 *
 * @throws {ConfigError} `tool_invalid`
 */
export function definePrompt(definition: PromptDefinition): Tool {
  const { name, namespace, execute } = definition
  const path = checkStart('prompt', namespace, 'name', name, findPromptNameProblem)
  checkFields(path, definition, PROMPT)
  const given = readArguments(path, definition.arguments)
  const own: ItemParts = {
    kind: 'prompt',
    id: `${PROMPT_PREFIX}${namespace}:${name}`,
    namespace,
    name,
    uri: undefined,
    mimeType: undefined,
    size: undefined,
    arguments: given,
  }
  return makeItem(own, { ...commonOf(definition, name), inputSchema: ofArguments(given), execute })
}

/** A further field with one of these names would replace the known field in a list. */
const OWN_FIELDS = ['uri', 'uriTemplate', 'mimeType', 'size', 'arguments'] as const

/** Returns the definition in the form that `makeItem` takes. */
function commonOf(definition: ItemDefinition, name: string): ItemFields {
  const { annotations, fields } = definition
  const known = OWN_FIELDS.find((field) => fields && field in fields)
  if (known !== undefined) throw invalid(name, `fields must not hold "${known}", which is a field of its own`)
  const common = Object.fromEntries(COMMON_NAMES.map((field) => [field, definition[field]]))
  return { ...common, name, annotations }
}

const ITEM = { ...COMMON, namespace: true, annotations: true } as const
const RESOURCE = shapeOf<ResourceDefinition>(
  { ...ITEM, uri: true, name: true, mimeType: true, size: true, execute: true },
  'field',
)
const TEMPLATE = shapeOf<TemplateDefinition>({ ...ITEM, uriTemplate: true, name: true, mimeType: true }, 'field')
const PROMPT = shapeOf<PromptDefinition>({ ...ITEM, name: true, arguments: true, execute: true }, 'field')

function checkStart(
  kind: ItemKind,
  namespace: unknown,
  field: string,
  value: unknown,
  findProblem: (value: unknown) => string | undefined,
): string {
  if (namespace === undefined) throw invalid(kind, 'namespace must be the name of a server')
  checkNamespace(namespace)
  const path = `${kind} ${JSON.stringify(typeof value === 'string' ? value.slice(0, 200) : value)}`
  const problem = findProblem(value)
  if (problem !== undefined) throw invalid(path, `${field} ${problem}`)
  return path
}

function checkFields(path: string, definition: object, shape: Parameters<typeof checkShape>[2]): void {
  try {
    checkShape(path, definition, shape)
  } catch (error) {
    if (!isErrorOf(error, ConfigError)) throw error
    throw new ConfigError(error.path, error.problem, { code: 'tool_invalid' })
  }
}

function checkText(path: string, field: string, value: unknown): void {
  if (value !== undefined && (typeof value !== 'string' || value.length > MAX_TEXT_LENGTH))
    throw invalid(path, `${field} must be a string of at most ${MAX_TEXT_LENGTH} characters`)
}

const MAX_TEXT_LENGTH = 2048

/** The name of a prompt may contain `:`, which then belongs to the name. */
function findPromptNameProblem(name: unknown): string | undefined {
  return findNameProblem(typeof name === 'string' ? name.replaceAll(':', '.') : name)
}

const MAX_ARGUMENTS = 100

function readArguments(path: string, given: unknown): readonly PromptArgument[] | undefined {
  if (given === undefined) return undefined
  const copy = frozenCopy(given)
  if ('problem' in copy) throw invalid(path, `arguments ${copy.problem.message}`)
  const list: unknown = copy.value
  if (!Array.isArray(list) || !list.every(isArgument)) throw invalid(path, 'arguments must be a list of { name, … }')
  if (list.length > MAX_ARGUMENTS) throw invalid(path, `has more than ${MAX_ARGUMENTS} arguments`)
  if (new Set(list.map(({ name }) => name)).size < list.length) throw invalid(path, 'has two arguments of one name')
  return list
}

function isArgument(value: unknown): value is PromptArgument {
  if (!isObject(value)) return false
  const { name, required } = value as { readonly name?: unknown; readonly required?: unknown }
  return typeof name === 'string' && (required === undefined || typeof required === 'boolean')
}

function ofUri(uri: string): JsonSchema {
  return { type: 'object', properties: { uri: { const: uri } }, required: ['uri'], additionalProperties: false }
}

/** Arguments of MCP's `prompts/get` are strings only. */
function ofArguments(given: readonly PromptArgument[] = []): JsonSchema {
  const texts = given.map(({ name, description }) => [
    name,
    { type: 'string', ...(description === undefined ? {} : { description }) },
  ])
  return deepFreeze({
    type: 'object',
    properties: Object.fromEntries(texts),
    required: given.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: { type: 'string' },
  })
}

function invalid(path: string, problem: string): ConfigError {
  return new ConfigError(path, problem, { code: 'tool_invalid' })
}
