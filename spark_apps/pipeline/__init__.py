"""What a pipeline's file says: its definition, fields, expressions, tables and topics."""
