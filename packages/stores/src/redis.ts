export { openRedisCounters, type RedisCounters, type RedisCountersOptions } from './redis/counters.ts'
