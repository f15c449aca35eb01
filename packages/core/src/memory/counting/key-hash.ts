import { sha256Hex } from '../../hash.ts'

/** 64 bits that stand for a key, as two signed words. */
export interface KeyHash {
  low: number
  high: number
}

/** Longer keys are hashed by their SHA-256. */
const MAX_LENGTH = 512
/** Terms that can be added before the sum must be folded: each is less than 2^48, and 2^53 is the most that is exact. */
const TERMS = 16
/** 2^32 - 5, a prime. */
const PRIME = 4_294_967_291
const WORD = 4_294_967_296

/** How many keys that were hashed lately are remembered: those of callers who call again and again. */
const RECENT = 4096
/** So many units at the end of a key say where it is remembered. */
const TELLING = 16

interface RecentHash extends KeyHash {
  key: string | undefined
}

/**
 * Gives a hash with a random key of its own. An answer is good until the next question.
 *
 * Multilinear hashing (Carter and Wegman): two sums of the text's units, each times a random number,
 * modulo a prime. Two different keys have the same hash with a probability of 2^-64, whatever they
 * are, as long as they were chosen without knowing the random numbers, and nothing tells those.
 */
export function createKeyHash(
  random: (words: Uint32Array<ArrayBuffer>) => void = randomWords,
): (key: string) => Readonly<KeyHash> {
  const factors = createFactors(2 * (MAX_LENGTH + 1), random)
  const recent = Array.from<RecentHash | undefined>({ length: RECENT })
  return (key) => {
    const hash = (recent[placeOf(key)] ??= { key: undefined, low: 0, high: 0 })
    if (hash.key !== key) {
      writeHash(key, factors, hash)
      hash.key = key.length > MAX_LENGTH ? undefined : key
    }
    return hash
  }
}

function placeOf(key: string): number {
  let sum = 0
  for (let i = Math.max(0, key.length - TELLING); i < key.length; i++)
    sum = (Math.imul(sum, 31) + key.charCodeAt(i)) | 0
  return sum & (RECENT - 1)
}

function writeHash(key: string, factors: Float64Array, into: KeyHash): void {
  const isLong = key.length > MAX_LENGTH
  const text = isLong ? sha256Hex(key) : key
  const length = text.length
  // A factor of their own keeps long keys apart from short ones that are spelled as their digest.
  let low = isLong ? (factors[2 * MAX_LENGTH] as number) : 0
  let high = isLong ? (factors[2 * MAX_LENGTH + 1] as number) : 0
  for (let i = 0; i < length;) {
    const end = Math.min(length, i + TERMS)
    for (; i < end; i++) {
      // No unit counts as 0, so that a key differs from the same with more at its end.
      const unit = text.charCodeAt(i) + 1
      low += unit * (factors[2 * i] as number)
      high += unit * (factors[2 * i + 1] as number)
    }
    low = fold(low)
    high = fold(high)
  }
  into.low = reduce(low)
  into.high = reduce(high)
}

/** Gives a smaller number that is the same modulo the prime, as 2^32 is 5. */
function fold(sum: number): number {
  const above = Math.floor(sum / WORD)
  return sum - above * WORD + above * 5
}

function reduce(sum: number): number {
  const folded = fold(sum)
  return (folded >= PRIME ? folded - PRIME : folded) | 0
}

/** Gives numbers below the prime, each as likely as any other. */
function createFactors(count: number, random: (words: Uint32Array<ArrayBuffer>) => void): Float64Array {
  const factors = new Float64Array(count)
  const words = new Uint32Array(count)
  for (let made = 0; made < count;) {
    random(words)
    for (const word of words) if (word < PRIME && made < count) factors[made++] = word
  }
  return factors
}

function randomWords(words: Uint32Array<ArrayBuffer>): void {
  crypto.getRandomValues(words)
}
