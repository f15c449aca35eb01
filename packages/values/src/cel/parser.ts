import { readTokens, type Token } from './lexer.ts'
import { type BinaryOp, type CelNode, CelProblem } from './tree.ts'
import { MAX_INT } from './values.ts'

const MAX_NODES = 500
const MAX_DEPTH = 40

/**
 * Parses an expression of CEL in linear time: at most 500 nodes, 40 deep.
 *
 * @throws {CelProblem} with the offset of the mistake
 */
export function parseCelText(text: string): CelNode {
  return new CelParser(text).parse()
}

/** Operators by precedence, lowest first. */
const LEVELS: readonly (readonly BinaryOp[])[] = [
  ['||'],
  ['&&'],
  ['<', '<=', '>=', '>', '==', '!=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
]

const RESERVED: ReadonlySet<unknown> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)

class CelParser {
  readonly #text: string
  readonly #tokens: readonly Token[]
  #next = 0
  #nodesLeft = MAX_NODES
  #depthLeft = MAX_DEPTH

  constructor(text: string) {
    this.#text = text
    this.#tokens = readTokens(text)
  }

  parse(): CelNode {
    const tree = this.#expression()
    if (this.#token.kind !== 'end') throw this.#unexpected()
    return tree
  }

  get #token(): Token {
    return this.#tokens[this.#next] as Token
  }

  #takes(kind: string): boolean {
    if (this.#token.kind !== kind) return false
    this.#next++
    return true
  }

  /** Returns the end of the token. */
  #expect(kind: string): number {
    const { end } = this.#token
    if (!this.#takes(kind)) throw this.#unexpected(`, expected ${kind}`)
    return end
  }

  #unexpected(wanted = ''): CelProblem {
    const { kind, start, end } = this.#token
    if (kind === 'end') return new CelProblem(`Unexpected end${wanted}`, start)
    return new CelProblem(`Unexpected token: ${this.#text.slice(start, end)}${wanted}`, start)
  }

  #node<Op extends CelNode['op']>(
    op: Op,
    args: Extract<CelNode, { op: Op }>['args'],
    start: number,
    end: number,
    pos = start,
  ): CelNode {
    if (this.#nodesLeft-- === 0) throw new CelProblem(`Exceeded maxAstNodes (${MAX_NODES})`, pos)
    return { op, args, start, end, pos, input: this.#text } as unknown as CelNode
  }

  #deeper(at: number): void {
    if (this.#depthLeft-- === 0) throw new CelProblem(`Exceeded maxDepth (${MAX_DEPTH})`, at)
  }

  #expression(): CelNode {
    this.#deeper(this.#token.start)
    const asked = this.#binary(0)
    const chosen = this.#takes('?') ? this.#choice(asked) : asked
    this.#depthLeft++
    return chosen
  }

  #choice(asked: CelNode): CelNode {
    const then = this.#expression()
    this.#expect(':')
    const otherwise = this.#expression()
    return this.#node('?:', [asked, then, otherwise], asked.start, otherwise.end)
  }

  #binary(level: number): CelNode {
    const ops = LEVELS[level]
    if (!ops) return this.#unary()
    let left = this.#binary(level + 1)
    for (;;) {
      const op = ops.find((one) => one === this.#token.kind)
      if (!op) return left
      this.#next++
      const right = this.#binary(level + 1)
      left = this.#node(op, [left, right], left.start, right.end)
    }
  }

  #unary(): CelNode {
    const signs: Token[] = []
    while (this.#token.kind === '!' || this.#token.kind === '-') {
      signs.push(this.#token)
      this.#next++
    }
    const minus = signs.at(-1)
    const isNegative = minus?.kind === '-' && this.#token.kind === 'number'
    if (isNegative) signs.pop()
    let node = this.#postfix(isNegative ? minus : undefined)
    for (const { kind, start } of signs.toReversed())
      node = this.#node(kind === '!' ? '!_' : '-_', node, start, node.end)
    return node
  }

  #postfix(minus: Token | undefined): CelNode {
    let node = this.#primary(minus)
    const depth = this.#depthLeft
    for (;;) {
      const { start } = this.#token
      if (this.#takes('.')) node = this.#field(node, start)
      else if (this.#takes('[')) node = this.#index(node, start)
      else break
    }
    this.#depthLeft = depth
    if (this.#token.kind === '{' && (node.op === 'id' || node.op === '.'))
      throw new CelProblem('messages are not offered, conditions have JSON', this.#token.start)
    return node
  }

  #field(of: CelNode, dot: number): CelNode {
    this.#deeper(dot)
    const { start, end, kind, value } = this.#token
    if (kind === '?') throw new CelProblem('optional values are not offered; write has()', start)
    this.#expect('name')
    const name = String(value)
    if (!this.#takes('(')) return this.#node('.', [of, name], of.start, end, start)
    const args = this.#list(')')
    return this.#node('rcall', [name, of, args], of.start, this.#expect(')'))
  }

  #index(of: CelNode, bracket: number): CelNode {
    this.#deeper(bracket)
    if (this.#token.kind === '?')
      throw new CelProblem('optional values are not offered; write has()', this.#token.start)
    const key = this.#expression()
    return this.#node('[]', [of, key], of.start, this.#expect(']'))
  }

  /** Parses expressions up to a bracket, which it does not consume. `trailing`: whether a trailing comma is allowed. */
  #list(close: string, trailing = false): readonly CelNode[] {
    const items: CelNode[] = []
    if (this.#token.kind === close) return items
    do {
      if (trailing && this.#token.kind === close) break
      items.push(this.#expression())
    } while (this.#takes(','))
    return items
  }

  #primary(minus: Token | undefined): CelNode {
    const { kind, start, end, value } = this.#token
    this.#next++
    switch (kind) {
      case 'number':
        return this.#number(value, minus?.start ?? start, end, minus !== undefined)
      case 'value':
        return this.#node('value', value as string, start, end)
      case 'name':
        return this.#name(String(value), start, end)
      case '(':
        return this.#inBrackets()
      case '[': {
        const items = this.#list(']', true)
        return this.#node('list', items, start, this.#expect(']'))
      }
      case '{':
        return this.#map(start)
      default:
        this.#next--
        throw this.#unexpected()
    }
  }

  #inBrackets(): CelNode {
    const inner = this.#expression()
    this.#expect(')')
    return inner
  }

  #number(value: unknown, start: number, end: number, isNegative: boolean): CelNode {
    if (isNegative && typeof value === 'object') throw new CelProblem('no such overload: -uint', start)
    const signed = isNegative ? -(value as number) : value
    if (typeof signed === 'bigint' && signed > MAX_INT) throw new CelProblem(`Invalid integer: ${signed}`, start)
    return this.#node('value', signed as number, start, end)
  }

  #name(name: string, start: number, end: number): CelNode {
    if (RESERVED.has(name)) throw new CelProblem(`Reserved identifier: ${name}`, start)
    if (!this.#takes('(')) return this.#node('id', name, start, end)
    const args = this.#list(')')
    return this.#node('call', [name, args], start, this.#expect(')'))
  }

  #map(start: number): CelNode {
    const entries: (readonly [CelNode, CelNode])[] = []
    while (this.#token.kind !== '}') {
      const key = this.#expression()
      this.#expect(':')
      entries.push([key, this.#expression()])
      if (!this.#takes(',')) break
    }
    return this.#node('map', entries, start, this.#expect('}'))
  }
}
