import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: { readonly $ref: string } }>>
}

export interface Operation {
  readonly tags: readonly string[]
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

interface Schema {
  readonly properties?: object
}

export interface CheckedAnswer {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly body: unknown
}

const FILE = new URL('../../packages/gateway/openapi.json', import.meta.url)

/** Answers of the HTTP API, compared with what `openapi.json` says. */
class Openapi {
  readonly document: Document
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
  /** The operations of which an answer was checked, with its status. */
  readonly checked: Set<string> = new Set()

  constructor(document: Document = JSON.parse(readFileSync(FILE, 'utf8')) as Document) {
    this.document = document
    // A field that the file does not have is a mistake of ours. To clients it is none.
    this.#ajv.addSchema(close(document) as object, 'openapi')
  }

  /** Every operation, with its method and path. */
  operations(): readonly { readonly method: string; readonly path: string; readonly operation: Operation }[] {
    return Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    )
  }

  /** Throws unless the file describes this answer. */
  check({ method, path, status, body }: CheckedAnswer): void {
    const what = `${method} ${path}: ${status} ${JSON.stringify(body)}`
    const pathname = new URL(path, 'http://gateway').pathname
    const found = this.operations().find((one) => one.method === method && matches(one.path, pathname))
    assert.ok(found, `not described: ${what}`)
    const response = found.operation.responses[status]
    assert.ok(response, `no such status: ${what}`)
    const ref = response.content?.['application/json']?.schema.$ref
    assert.ok(ref !== undefined, `no JSON: ${what}`)
    if (status >= 400) {
      const { code } = (body as { readonly error: { readonly code: string } }).error
      assert.match(response.description, new RegExp(`\`${code}\``), `no such fault: ${what}`)
    }
    const validate = this.#ajv.getSchema(`openapi${ref}`)
    assert.ok(validate, `no schema ${ref}`)
    assert.ok(validate(body), `${what}\n${JSON.stringify(validate.errors, undefined, 2)}`)
    this.checked.add(`${method} ${found.path} ${status}`)
  }
}

/** Checks the answers to every test gateway's `api`. */
export const openapi: Openapi = new Openapi()

function matches(template: string, path: string): boolean {
  return new RegExp(`^${template.replaceAll('.', '\\.').replace(/\{\w+\}/, '[^/]+')}$`).test(path)
}

function close(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(close)
  if (typeof node !== 'object' || node === null) return node
  const entries = Object.entries(node).map(([key, value]) => [key, close(value)] as const)
  const isOpen = 'type' in node && node.type === 'object' && 'properties' in node && !('additionalProperties' in node)
  return Object.fromEntries(isOpen ? [...entries, ['additionalProperties', false]] : entries)
}
