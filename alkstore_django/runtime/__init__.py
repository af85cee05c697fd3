"""The worker process. The only folder that sleeps, starts threads or handles signals."""
