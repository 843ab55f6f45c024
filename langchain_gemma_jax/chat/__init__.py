"""What stands between LangChain and the engine: messages in, messages out, and what one call asks for."""
